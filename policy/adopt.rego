# May this generation replace the one serving? Asked of the policy that is serving, or at a start of the one that was
# adopted last, so a change can't remove its own gate. A policy whose tests fail is not adopted, but for the first start,
# which runs none. A reload that would leave a branch without any tool looks like an accident: it is refused unless
# policy/adopt/data.yaml names the branch. Removing a branch itself is taken at its word, removing all of them is not.
package catalogd.adopt

import future.keywords.not

default allow := false

allow if input.bootstrap

allow if input.serving

deny contains sprintf("%d tests of the policy fail, such as %s: `catalogd test` says why", [input.tests.failed, input.tests.failures[0]]) if {
	input.tests.failed > 0
}

deny contains sprintf("branch %s would lose all of its tools: name it in may_empty of policy/adopt/data.yaml first, if that is meant", [branch]) if {
	some branch, tools in input.serving.visible
	count(tools) > 0
	branch in input.candidate.branches
	count(object.get(input.candidate.visible, branch, [])) == 0
	not branch in data.adopt.may_empty
}

deny contains "every branch would be gone" if {
	count(input.serving.branches) > 0
	count(input.candidate.branches) == 0
}
