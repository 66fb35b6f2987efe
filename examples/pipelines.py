"""
Pipelines and model selection
=============================

``FairPCA`` takes the place of ``PCA``. It needs the groups for fitting only, and receives them
through scikit-learn's metadata routing.
"""

import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.datasets import load_diabetes_by_sex
from fairpca.metrics import group_reconstruction_errors

people = load_diabetes_by_sex(prepare=False)
X, sex, y = people.data, people.sensitive_features, people.target

# %%
# Without routing, name the step: the pipeline passes the keyword on to it.

pipeline = make_pipeline(StandardScaler(), FairPCA(3), Ridge())
pipeline.fit(X, y, fairpca__sensitive_features=sex)
pipeline.predict(X[:3])  # needs no groups

# %%
# With routing, ``sensitive_features`` also passes through searches. This one asks how many
# components, and how much fairness, suit the prediction best.

with sklearn.config_context(enable_metadata_routing=True):
    search = GridSearchCV(
        make_pipeline(StandardScaler(), FairPCA(), Ridge()),
        {"fairpca__n_components": [2, 4, 6], "fairpca__max_disparity": [0.0, 0.05]},
        cv=5,
    ).fit(X, y, sensitive_features=sex)
print(search.best_params_, f"R2 {search.best_score_:.3f}")

# %%
# How the chosen projection treats each group.

scaler, fair = search.best_estimator_[0], search.best_estimator_["fairpca"]
print(fair.status_, fair.group_errors_.round(4))
group_reconstruction_errors(fair, scaler.transform(X), sex)
