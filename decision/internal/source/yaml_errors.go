package source

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	yamlLine  = regexp.MustCompile(`\bline (\d+)`)
	yamlPlace = regexp.MustCompile(`^yaml: (line \d+: )?`)
)

// Limits of the second look at a file that is not valid YAML, which parses it line by line.
const (
	maxLines = 1_000
	maxBytes = 64 << 10
)

// explainYAML is the line of a YAML error, 0 for none, and its message without a position, with remedies for
// the most common mistakes. The line that the parser names is where the block begins in which it fails; that
// of the mistake is the first whose text, with all above it, fails in the same way.
func explainYAML(err error, content []byte) (line int, message string) {
	message = yamlPlace.ReplaceAllString(err.Error(), "")
	line = lineOf(err)
	if line == 0 {
		return line, message
	}
	lines := strings.SplitAfter(string(content), "\n")
	if len(lines) <= maxLines && len(content) <= maxBytes {
		for n := 1; n <= len(lines); n++ {
			var node yaml.Node
			if err := yaml.Unmarshal([]byte(strings.Join(lines[:n], "")), &node); err != nil && yamlPlace.ReplaceAllString(err.Error(), "") == message {
				line = n
				break
			}
		}
	}
	text := ""
	if line <= len(lines) {
		text = strings.TrimRight(lines[line-1], "\r\n")
	}
	switch {
	case strings.HasPrefix(strings.TrimLeft(text, " "), "\t"):
		message += ": indent the line with spaces, not tabs"
	case message == "found character that cannot start any token":
		message += ": YAML indents with spaces, not tabs, and quotes what begins with @ or `"
	case message == "mapping values are not allowed in this context":
		message += ": indent the line like its neighbours, look for a missing colon above it, or quote a text that holds a colon"
	case strings.HasPrefix(message, "did not find expected alphabetic or numeric character"):
		message += `: quote what begins with * or & (tools: ["*"])`
	case strings.HasPrefix(message, "unknown anchor"):
		message += `: quote what begins with * (tools: ["get_*", "*_user"])`
	case message == "did not find expected key" || strings.HasPrefix(message, "did not find expected '-'"):
		message += oddIndentation(lines[:min(line, len(lines))])
	}
	return line, message
}

// oddIndentation says how the last of the lines is indented, and how those above it that it may belong to
// are.
func oddIndentation(lines []string) string {
	last := len(lines) - 1
	own := indentation(lines[last])
	var indents []int
	for _, line := range lines[:last] {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			indents = append(indents, indentation(line))
		}
	}
	if slices.Contains(indents, own) || len(indents) == 0 {
		return ": the line doesn't continue what is above it; look at its indentation, and for a quote or bracket that is not closed"
	}
	slices.Sort(indents)
	above := strings.Trim(fmt.Sprint(slices.Compact(indents)), "[]")
	return fmt.Sprintf(": the line is indented by %d, and those above it by %s; indent it like its neighbours", own, strings.ReplaceAll(above, " ", ", "))
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// lineOf is the line that a YAML error names, 0 for none.
func lineOf(err error) int {
	m := yamlLine.FindStringSubmatch(fmt.Sprint(err))
	if m == nil {
		return 0
	}
	line, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return line
}
