"""
Auditing a PCA
==============

Does a PCA describe a group worse than the others, how sure is that, what can be done, and what
would the others lose?
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import audit, audit_model
from fairpca.datasets import load_checkup
from fairpca.plotting import ChangesDisplay

people = load_checkup()
X, age = people.data, people.sensitive_features
pipeline = make_pipeline(StandardScaler(), PCA(5))

# %%
# :func:`fairpca.audit` takes the pipeline before it is fitted. It judges it by cross-validation
# with ten folds, and tries ``FairPCACV`` in the place of ``PCA``.

result = audit(pipeline, X, age)
print(result)

# %%
# One row for each group: its error against that of all other people, with an interval, and what
# the fair version would change.

for row in result.groups:
    gap, change = row.baseline.gap, row.change
    print(
        f"{row.name:14}{row.n:6} people, error {gap.value:+.0%} "
        f"({gap.low:+.0%} to {gap.high:+.0%}) "
        f"against all others; fair version {change.value:+.0%}, better off {row.better_off:.0%}"
    )

# %%
# The picture for a slide: how much each group's error changes, with intervals.

ChangesDisplay.from_audit(result)
plt.show()

# %%
# A PCA that is already in use is judged as it is, here on rows that it has not seen.

fitted = pipeline.fit(X[::2])
print(audit_model(fitted, X[1::2], age[1::2]))

# %%
# ``result.to_html("report.html")`` writes the page that ``fairpca report`` makes, and
# ``result.to_dict()`` gives everything as plain numbers.

sorted(result.to_dict())
