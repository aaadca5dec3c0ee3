// Package docs holds the documents of the project and the tests that run them: every configuration is built, every rule
// file compiled, every command executed and its output compared, every named test and metric looked up. A document that
// says what the program no longer does fails `make test`.
//
// How a document is read: a fenced block is preceded by at most one line that says how it is meant.
//
//	<!-- file: NAME -->   the block is also a file of that name for the commands of this document
//	<!-- refused -->      a configuration or rule file that must not be accepted
//	<!-- node -->         these commands are run beside a daemon that was started from the document's wyegate.yaml
//	<!-- other -->        not for this program; only what it says about metrics is checked
//
// A yaml block with `version: 1` is a whole configuration; any other yaml block holds whole sections, and what it lacks is
// filled in from a small configuration. A console block is run command by command; a line of output that is only … stands
// for any lines. What differs from run to run (times, digests, folders) is masked on both sides. A sh block is not run,
// but its verbs, flags and targets must exist.
//
// With -update a console block is rewritten with what the program printed.
package docs
