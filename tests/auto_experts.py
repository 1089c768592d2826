"""AutoKONS's experts, as its state has them: one place to change when that does."""


def experts(model):
    """What is stored of each expert that has begun, by its name."""
    names = list(model.shares)[3:]  # behind the mean, the last target and the trend
    stored = model.state()["targets"][0]["drift"]["current"]["selection"]["experts"]
    return {name: expert for name, expert in zip(names, stored, strict=True) if expert is not None}


def features_seen(model):
    """How many features each expert looks at, by its name."""
    views = model.state()["targets"][0]["drift"]["current"]["selection"]["all_feature_maps"]
    return {name: views[expert["feature_map"]]["features"] for name, expert in experts(model).items()}


def at_work(model):
    """Which ensemble is at work, counted as they took over, and how many rows it has learned."""
    succession = model.state()["targets"][0]["drift"]
    return succession["number"], succession["current"]["rows"]


def has_previous(model):
    return model.state()["targets"][0]["drift"]["previous"] is not None
