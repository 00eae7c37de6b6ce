"""What a board starts, on fakes of its port."""
