# Reads the output of `go test -bench -count N` and prints the median of each benchmark's figures.
/^pkg:/ { sub(".*/catalogd", "catalogd", $2); pkg = $2 }
/^Benchmark/ {
	name = $1
	sub(/-[0-9]+$/, "", name)
	if (!(name in runs)) order[++names] = name
	package[name] = pkg
	runs[name]++
	for (i = 3; i < NF; i += 2) {
		value[name, $(i + 1), runs[name]] = $i
		if (!((name, $(i + 1)) in seen)) { seen[name, $(i + 1)]; units[name] = units[name] " " $(i + 1) }
	}
}
/^(FAIL|--- FAIL|panic)/ { print; failed = 1 }
function median(name, unit, n,    i, j, v, a) {
	for (i = 1; i <= n; i++) {
		v = value[name, unit, i] + 0
		for (j = i - 1; j > 0 && a[j] > v; j--) a[j + 1] = a[j]
		a[j + 1] = v
	}
	return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}
END {
	for (k = 1; k <= names; k++) {
		name = order[k]
		line = sprintf("%-26s %-46s %d runs", package[name], name, runs[name])
		m = split(units[name], unit, " ")
		for (i = 1; i <= m; i++) line = line sprintf("  %.6g %s", median(name, unit[i], runs[name]), unit[i])
		print line
	}
	exit failed
}
