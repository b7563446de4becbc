"""The sticky assignors: sticky (eager) and cooperative-sticky, which share all but how they learn of the past."""
