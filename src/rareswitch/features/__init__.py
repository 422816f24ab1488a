"""Records to vectors: a frozen description that travels with a policy."""


class Features: ...
