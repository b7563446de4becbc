"""The sticky assignors: sticky (eager) and cooperative-sticky, which differ in how they learn the previous assignment."""
