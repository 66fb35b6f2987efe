"""
Faces of women and men, rebuilt
===============================

The same six faces rebuilt from 20 numbers each, by PCA and by four fair projections, with the error
of each face; and the components as pictures. Needs the file of LFW; see
:func:`fairpca.datasets.load_lfw`. ``python -m reproduction`` draws both figures too. In the root of
the repository, run ``python -m examples.paper_data.lfw_faces``.
"""

from pathlib import Path

from fairpca.datasets import load_lfw
from reproduction.faces import draw_faces

for file in draw_faces(load_lfw(), Path("faces")):
    print(file)

# %%
# The faces shown are an easy, a typical and a hard one of each group, by PCA's error. On the left
# are the mean errors of both groups. PCA loses more of women's faces, 12.0 against 11.2.
# ``FairPCA`` makes both errors 11.6: the women's faces come out better, the men's a little worse.
# ``BlindPCA`` has another aim, to hide who is a woman, and pays for it with detail of all faces.
