from bench.steps import steps


def test_every_step_has_a_cost() -> None:
    found = steps(2_000)
    assert len(found) == 7
    assert all(cost > 0 for _, cost in found)
