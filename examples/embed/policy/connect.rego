# The tools of this program start no command and open no connection.
package catalogd.connect

default allow := false
