__version__: str
build_profile: str
