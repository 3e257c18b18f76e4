package diff

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/decision/lint"
)

// seenDifferences are the differences between two policies' answers to some questions.
type seenDifferences struct {
	class    Class
	examples []found
	affected int
}

// found is one question that two policies answer differently.
type found struct {
	question
	class    Class
	old, now answer
	terms    []string // the differing ones, if both allow
}

// compare evaluates both policies. The answers of base are cached.
func (p *population) compare(
	ctx context.Context, next *decision.Engine, points []decision.Point, focus func(decision.Point) []lint.Hint,
) (s seenDifferences, err error) {
	s.class = Neutral
	about := map[string]bool{}
	for _, point := range points {
		questions := p.questions(point, focus(point))
		olds, nows, err := p.both(ctx, next, questions)
		if err != nil {
			return s, err
		}
		for i, q := range questions {
			old, now := olds[i], nows[i]
			class, differ := old.to(now)
			if class == Neutral {
				continue
			}
			s.class = s.class.with(class)
			s.examples = append(s.examples, found{q, class, old, now, differ})
			about[q.about()] = about[q.about()] || q.real
		}
	}
	for _, real := range about {
		if real {
			s.affected++
		}
	}
	return s, nil
}

// both returns the answers of the old policy and of next to each of the questions, which differ from each other.
// As many are asked at once as there are processors.
func (p *population) both(
	ctx context.Context, next *decision.Engine, questions []question,
) (olds, nows []answer, err error) {
	olds, nows = make([]answer, len(questions)), make([]answer, len(questions))
	asked, ctx := errgroup.WithContext(ctx)
	asked.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range questions {
		asked.Go(func() (err error) {
			known := false
			if olds[i], known = p.answers[q.key]; !known {
				if olds[i], err = q.ask(ctx, p.from.Engine()); err != nil {
					return err
				}
			}
			nows[i], err = q.ask(ctx, next)
			return err
		})
	}
	if err := asked.Wait(); err != nil {
		return nil, nil, err
	}
	for i, q := range questions {
		p.answers[q.key] = olds[i]
	}
	return olds, nows, nil
}

// about identifies the principal and the subject of a question, without the arguments.
func (q question) about() string {
	x := q.subject()
	return fmt.Sprint(x.Point, "|", x.Branch, "|", x.Tool, "|", x.Principal, "|", x.Groups, "|", x.Target)
}
