module github.com/catalogd/catalogd/bench

go 1.26.0
