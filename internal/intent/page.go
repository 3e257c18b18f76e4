package intent

import "context"

const (
	// looked caps how many intents one Page looks at.
	looked = 2000
	// parts are read of so many at once.
	fewest, most = 100, 500
)

// Page returns the next intents of a filter that the person may know of, the newest first, and what
// Filter.Before is for the page after it; 0 where there is none. A page may have fewer than f.Limit, or none,
// and still be followed by another: of a long history only a part is looked at for each.
func (e *Effector) Page(ctx context.Context, f Filter, by Person) (page []Intent, before int64, err error) {
	limit := max(f.Limit, 1)
	for left := looked; ; {
		f.Limit = min(max(limit, fewest), most, left)
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
