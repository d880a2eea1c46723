# What `find_package(semel)` finds: semel::semel, and one target for each store and source that was built.
