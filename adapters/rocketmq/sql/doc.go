// Package sql reads the SQL92 expressions by which RocketMQ consumers choose messages, and holds messages against them.
// Parse once, then Match each message: a Program is immutable, and Match allocates nothing.
//
// Properties are texts. Beside a number a text counts as a number if it is one, beside a boolean as one; otherwise the
// comparison is false. Logic has three values: what is said about a property that is missing is neither true nor false, and
// such a message does not match.
//
// Not supported, as in the real broker: arithmetic, LIKE, !=, order of texts.
//
// Spec: RocketMQ SelectorParser, ComparisonExpression, LogicExpression@5.x
package sql
