"""What others would say of the same cases: each method turns what it is given of a case into ranked causes."""
