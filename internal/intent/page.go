package intent

import "context"

const (
	// maxRead is the maximum number of intents that one Page reads.
	maxRead = 2000
	// minPart and maxPart are the minimum and maximum number of intents of one List.
	minPart, maxPart = 100, 500
)

// Page returns the next intents of a filter that the person may see, the newest first, and the Filter.Before
// of the next page; 0 if there is none. A page may have fewer than f.Limit intents, or none, and still be
// followed by another, because Page reads at most 2,000 intents.
func (e *Effector) Page(ctx context.Context, f Filter, by Person) (page []Intent, before int64, err error) {
	limit := max(f.Limit, 1)
	for left := maxRead; ; {
		f.Limit = min(max(limit, minPart), maxPart, left)
		part, err := e.cfg.Store.List(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		left -= len(part)
		for i, in := range part {
			f.Before = in.Seq
			if !by.Sees(in) {
				continue
			}
			if page = append(page, in); len(page) == limit {
				if i == len(part)-1 && len(part) < f.Limit {
					return page, 0, nil
				}
				return page, f.Before, nil
			}
		}
		switch {
		case len(part) < f.Limit:
			return page, 0, nil
		case left == 0:
			return page, f.Before, nil
		}
	}
}
