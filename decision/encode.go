package decision

import (
	"fmt"
	"reflect"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/catalogd/catalogd/decision/internal/shape"
)

// AppendInput appends the JSON of the document that the engine evaluates for an input of the point, so that
// `opa eval -i` with it answers as the engine does.
func AppendInput(dst []byte, point Point, input any) ([]byte, error) {
	s, err := shapeFor(point, input)
	if err != nil {
		return dst, err
	}
	return s.AppendJSON(dst, reflect.ValueOf(input))
}

// AppendInput appends the JSON of the event's input as a log has it: what the policy saw
// (decision.AppendInput) without what Erased names.
func (e Event) AppendInput(dst []byte) ([]byte, error) {
	form, err := e.logged()
	if err != nil {
		return dst, err
	}
	return form.shape.AppendJSON(dst, reflect.ValueOf(e.Input))
}

// Erased are the JSON pointers of what AppendInput leaves out: the fields whose tag is log:"-" (arguments,
// results), and a result that no rule read.
func (e Event) Erased() []string {
	form, err := e.logged()
	if err != nil {
		return nil
	}
	return form.erased
}

// loggedForm is an input as logs have it.
type loggedForm struct {
	shape  *shape.Shape
	erased []string
}

var (
	viewerShape  = shape.Of[Viewer]()
	attemptShape = shape.Of[Attempt]()
	transitShape = shape.Of[Transition]()
	// loggedForms are by the shape of the input; unseen is that of a result that no rule read.
	loggedForms = map[*shape.Shape]loggedForm{}
	unseen      loggedForm
)

func init() {
	never := func(f shape.Field) bool { return f.Unlogged }
	for _, s := range []*shape.Shape{viewerShape, attemptShape, transitShape} {
		loggedForms[s] = formWithout(s, never)
	}
	for _, spec := range points {
		loggedForms[spec.input] = formWithout(spec.input, never)
		if spec.point == Result {
			unseen = formWithout(spec.input, func(f shape.Field) bool { return f.Unlogged || f.Name == "result" })
		}
	}
}

func formWithout(s *shape.Shape, erase func(shape.Field) bool) loggedForm {
	rest, erased := s.Without("/input", erase)
	return loggedForm{rest, erased}
}

func (e Event) logged() (loggedForm, error) {
	if e.Point == Result && e.Unseen {
		return unseen, nil
	}
	s, err := shapeFor(e.Point, e.Input)
	return loggedForms[s], err
}

func shapeFor(point Point, input any) (*shape.Shape, error) {
	if _, ok := input.(Viewer); ok && point == List {
		return viewerShape, nil
	}
	if _, ok := input.(Attempt); ok && point == Attempted {
		return attemptShape, nil
	}
	if _, ok := input.(Transition); ok && point == Transitioned {
		return transitShape, nil
	}
	spec, ok := specOf(point)
	if !ok || !takesInput(point, input) {
		return nil, fmt.Errorf("the point %s takes no %T", point, input)
	}
	return spec.input, nil
}

// Document is an input of a point exactly as the policy sees it.
func Document(point Point, input any) (map[string]any, error) {
	spec, ok := specOf(point)
	if !ok || !takesInput(point, input) {
		return nil, fmt.Errorf("the point %s takes no %T", point, input)
	}
	term, err := spec.input.Value(reflect.ValueOf(input))
	if err != nil {
		return nil, err
	}
	v, err := ast.JSON(term.Value)
	document, _ := v.(map[string]any)
	return document, err
}

// AppendString appends a JSON string.
func AppendString(dst []byte, s string) []byte { return shape.AppendString(dst, s) }
