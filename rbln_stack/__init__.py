"""The library of the stack: config, discovery, planning, naming, vendor profiles, pod builders."""
