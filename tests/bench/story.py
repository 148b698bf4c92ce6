"""A story long enough to be interrupted in, for a scripted language model to tell."""

_PLACES = ("harbour", "mountain village", "old library", "lighthouse", "railway station", "garden", "bakery", "island")
STORY = " ".join(
    f"{opening} the people of the {_PLACES[(number + shift) % len(_PLACES)]} {rest}"
    for number in range(25)
    for shift, (opening, rest) in enumerate(
        (
            ("In the morning", "opened their windows and looked at the sea."),
            ("After a while", "heard a strange sound from far away."),
            ("Nobody knew why", "were so quiet on that day, and nobody asked."),
            ("Later", "walked slowly down the road to the old bridge, where they waited."),
            ("In the end", "went home again and told their children about it."),
        )
    )
)
