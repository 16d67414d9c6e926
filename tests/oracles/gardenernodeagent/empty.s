// Functions without a body, which the linker finds in another package, need a file of assembly in theirs.
