// Package archtest holds the rules of the house as tests: which package may import which, which packages are pure,
// where each dependency lives, and that packages and exported names have comments. The tests parse the files
// themselves, so that the test cache notices when a file changes. There is nothing else in the package.
package archtest
