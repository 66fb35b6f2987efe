"""
Erase the group from text embeddings
====================================

Embeddings of texts tell more than their topic: here, which library a piece of documentation belongs
to. ``GroupEraser`` changes the embeddings as little as possible so that no linear model can tell.
The dimension stays, and new texts need no label.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import scipy
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from fairpca import GroupEraser


def texts_of(*modules):
    """First paragraphs of the documentation of what the modules offer, without examples."""
    found = (inspect.getdoc(getattr(m, name)) or "" for m in modules for name in sorted(dir(m)))
    return sorted({" ".join(text.split())[:600] for text in found if len(text) > 200})


numpy_texts = texts_of(np, np.linalg, np.fft, np.random)
scipy_texts = texts_of(scipy.linalg, scipy.fft, scipy.stats, scipy.signal, scipy.special)
texts = numpy_texts + scipy_texts
library = np.repeat(["numpy", "scipy"], [len(numpy_texts), len(scipy_texts)])

words = TfidfVectorizer(min_df=3, stop_words="english").fit_transform(texts)
embeddings = TruncatedSVD(40, random_state=0).fit_transform(words)
old, new, old_library, new_library = train_test_split(
    embeddings, library, test_size=0.5, random_state=0, stratify=library
)

# %%
# Erase more and more of the group, fitted to one half of the texts, and let two classifiers guess
# the library of the other half. As long as a part of the difference is left, a classifier finds it.
# With all of it erased, a linear one does hardly better than chance on new texts. Boosted trees are
# not linear, and still find the group: what ``GroupEraser`` promises is about linear models only.

strengths = np.linspace(0, 1, 3)
guesses = {"logistic regression": [], "boosted trees": []}
changes = []
for strength in strengths:
    eraser = GroupEraser(strength=strength).fit(old, sensitive_features=old_library)
    changes.append(eraser.change_)
    before, after = eraser.transform(old), eraser.transform(new)
    for name, model in (
        ("logistic regression", LogisticRegression(C=100, max_iter=5000)),
        ("boosted trees", HistGradientBoostingClassifier(max_iter=30, random_state=0)),
    ):
        told = model.fit(before, old_library).predict_proba(after)[:, 1]
        guesses[name].append(roc_auc_score(new_library == "scipy", told))

for name, found in guesses.items():
    print(f"AUC of {name:20}", np.round(found, 2))
print(f"share of the variance moved     {np.round(changes, 3)}")

# %%
_, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, found in guesses.items():
    ax.plot(strengths, found, "o-", label=name)
ax.axhline(0.5, color="0.7", linewidth=1)
ax.set_xlabel("strength")
ax.set_ylabel("AUC, library guessed\nfrom held-out texts")
ax.legend(frameon=False)
plt.show()
