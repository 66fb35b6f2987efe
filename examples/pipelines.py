"""
Pipelines and model selection
=============================

``FairPCA`` takes the place of ``PCA``. It needs the groups for fitting only, and receives them
through scikit-learn's metadata routing.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.datasets import load_rand_health
from fairpca.metrics import disparity_scorer, group_reconstruction_errors
from fairpca.plotting import ScoresDisplay

people = load_rand_health(prepare=False)
health = people.feature_names.index("general_health")
X, y = np.delete(people.data, health, axis=1), people.data[:, health]
race = people.sensitive_features

# %%
# Without routing, name the step: the pipeline passes the keyword on to it.

pipeline = make_pipeline(StandardScaler(), FairPCA(8), Ridge())
pipeline.fit(X, y, fairpca__sensitive_features=race)
pipeline.predict(X[:3])  # needs no groups

# %%
# With routing, ``sensitive_features`` also passes through searches, and to
# ``disparity_scorer``. This search asks how many components suit the prediction best, and what
# fairness costs and gives on the held-out folds. ``alpha=1`` is plain PCA.

with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        make_pipeline(StandardScaler(), FairPCA(), Ridge()),
        {"fairpca__n_components": [2, 4, 8], "fairpca__alpha": [1.0, None]},
        scoring={"R2": "r2", "disparity": disparity_scorer},
        refit="R2",
        cv=KFold(5, shuffle=True, random_state=0),
    ).fit(X, y, sensitive_features=race)
found = search.cv_results_
for tried, R2, disparity in zip(
    found["params"], found["mean_test_R2"], -found["mean_test_disparity"], strict=True
):
    kind = "PCA" if tried["fairpca__alpha"] else "fair PCA"
    r = tried["fairpca__n_components"]
    print(f"{kind:9} {r} components: R2 {R2:.3f}, disparity {disparity:.2f}")

# %%
# How the first pipeline treats each group. The metrics find the projection in it.

fair = pipeline["fairpca"]
print(fair.status_, fair.group_errors_.round(3), "under PCA", fair.pca_group_errors_.round(3))
errors = group_reconstruction_errors(pipeline, X, race)
print({group: round(error, 3) for group, error in errors.items()})
ScoresDisplay.from_estimator(pipeline, X, race)
plt.show()
