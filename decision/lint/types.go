package lint

import (
	"github.com/catalogd/catalogd/decision/internal/shape"
	"github.com/catalogd/catalogd/decision/internal/source"
)

// The types of other packages in the exported fields of a Policy, named here for programs that embed catalogd.
type (
	// InputShape describes the input document of a decision point.
	InputShape = shape.Shape
	// InputField is one field of an InputShape.
	InputField = shape.Field
	// InputKind is the kind of value that an InputShape describes.
	InputKind = shape.Kind
	// PolicyData is the policy's data, with the positions of its keys.
	PolicyData = source.Data
)
