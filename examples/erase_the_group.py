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
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from fairpca import GroupEraser


def texts_of(*modules):
    """How the documentation of each thing that the modules offer begins."""
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
# With all of it erased, a linear one does hardly better than chance on new texts. A random forest
# is not linear, and still finds the group: ``GroupEraser`` stops linear models only.

strengths = np.array([0, 0.5, 0.9, 1])
guesses = {"logistic regression": [], "random forest": []}
changes = []
for strength in strengths:
    eraser = GroupEraser(strength=strength).fit(old, sensitive_features=old_library)
    changes.append(eraser.change_)
    before, after = eraser.transform(old), eraser.transform(new)
    for name, model in (
        ("logistic regression", LogisticRegression(C=100, max_iter=5000)),
        ("random forest", RandomForestClassifier(100, random_state=0)),
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
ax.text(0, 0.51, "chance", color="0.4")
ax.set_xlabel("strength: share of the difference erased")
ax.set_ylabel("AUC, library guessed\nfrom held-out texts")
ax.legend(frameon=False, loc="center left")
plt.show()

# %%
# :doc:`/choosing` says when to use ``GroupEraser``, ``BlindPCA``, or fairlearn's
# ``CorrelationRemover``.
