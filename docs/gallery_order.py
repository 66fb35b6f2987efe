"""The order of the examples: first steps first."""

ORDER = [
    "first_steps.py",
    "new_people.py",
    "audit_a_pca.py",
    "three_groups.py",
    "credit_clients.py",
    "choose_a_tradeoff.py",
    "how_many_components.py",
    "which_questions.py",
    "which_fairness.py",
    "blind_scores.py",
    "erase_the_group.py",
    "scores_for_a_target.py",
    "batches.py",
    "pipelines.py",
    "read_big_files.py",
]


def by_difficulty(filename: str) -> int:
    """Place of an example; one that is not listed is an error, not the last."""
    if filename not in ORDER:
        raise ValueError(f"examples/{filename} has no place: add it to ORDER in {__file__}.")
    return ORDER.index(filename)
