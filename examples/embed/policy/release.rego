package catalogd.release

import data.catalogd.lib.access

default allow := false

allow if access.granted
