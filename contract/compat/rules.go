package compat

// The rules of the prover were measured, each by what changes without it. 6,242 pairs of schemas were
// compared: 515 schemas of public MCP servers (testdata/tool-lists, testdata/dialect/tool-lists) and 451
// derived from CUE (testdata/load and the tests of internal/derive), each with random changes that add,
// remove, narrow or widen a keyword or write it in another way; and the pairs that TestCompareRealSchemas and
// the tests of internal/lockfile compare. The number of pairs with another verdict:
//
//	one branch of an anyOf fits           1018    an enum, value by value                 288
//	alternatives, each by itself           370    null, true and false, value by value     25
//	a branch of a oneOf fits no other      239    types, each by itself                     8
//	an if, with its then and else           78    the same text                             7
//	recursion, by coinduction               41    excluded by a not                        11
//	a required member that can't be         79    an enum without a valid member           20
//	alternatives without a valid one        10    bounds that no number is between          3
//	additionalProperties for a pattern      72    maxProperties of a closed object         56
//	propertyNames that imply others         51    propertyNames of a closed object         16
//	minProperties by required               23    bounds rounded to integers               11
//	the same pattern                        59    the same uniqueItems, format, encoding   25
//	contains that implies another            4    items that are false bound the length     1
//
// The same oneOf, branch by branch, decides 2 where a $ref in it leads to definitions that have changed
// elsewhere. None of the schemas had multipleOf, which internal/derive can write.
//
// These rules decided nothing and are left out: dependentRequired by required, minContains and maxContains,
// integers as multiples, integers between two bounds, value by value, contradictory lengths, an if that never
// or always holds, and the same $ref in two documents. For the keywords among them an equal text is all that
// is recognized. Of dependentSchemas, unevaluatedProperties and unevaluatedItems only a whole subschema of
// the same text is.
