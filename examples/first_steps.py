"""
First steps
===========

How plain PCA and fair PCA treat women and men in scikit-learn's diabetes data.
"""

from fairpca import FairPCA
from fairpca.datasets import load_diabetes_by_sex

people = load_diabetes_by_sex()
fair = FairPCA(n_components=3).fit(people.data, sensitive_features=people.sensitive_features)

print(f"{len(people.data)} people, {people.data.shape[1]} measurements, 3 components")
print("average squared reconstruction error:")
print(f"{'':10}{'PCA':>8}{'fair PCA':>10}")
for group, before, after in zip(
    fair.groups_, fair.pca_group_errors_, fair.group_errors_, strict=True
):
    print(f"{group:10}{before:8.4f}{after:10.4f}")
print(f"{'overall':10}{fair.pca_reconstruction_error_:8.4f}{fair.reconstruction_error_:10.4f}")

cost = fair.reconstruction_error_ / fair.pca_reconstruction_error_ - 1
print(f"{fair.status_}: disparity {fair.disparity_:.1e}, at a cost of {cost:.2%} overall")
print(
    f"certificate: no projection this fair has an error lower by more than {fair.duality_gap_:.0e}"
)
