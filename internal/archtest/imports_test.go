package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/wyegate/wyegate/"

// file is one parsed Go file of the module.
type file struct {
	pkg  string // folder, from the root
	name string
	test bool
	ast  *ast.File
	fset *token.FileSet
}

func (f file) imports() []string {
	var out []string
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

// load parses every Go file of the module. Parsed here, not asked of the go command: the test cache must notice when a
// file changes.
func load(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); p != root && (strings.HasPrefix(n, ".") || n == "testdata" || n == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, p, data, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		files = append(files, file{filepath.ToSlash(rel), d.Name(), strings.HasSuffix(p, "_test.go"), parsed, fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d files found: the walk is wrong", len(files))
	}
	return files
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, f := range load(t) {
		may, known := allowed[f.pkg]
		if !known {
			t.Errorf("package %s has no line in the import table", f.pkg)
			continue
		}
		for _, imp := range f.imports() {
			own, inside := strings.CutPrefix(imp, module)
			if !inside {
				continue
			}
			if f.test {
				continue
			}
			if slices.Contains(testOnly, own) {
				t.Errorf("%s/%s imports %s, which is for tests only", f.pkg, f.name, own)
			}
			if own == "internal/obs" && !slices.Contains(pure, f.pkg) {
				continue
			}
			if slices.Contains(never[f.pkg], own) || !slices.Contains(may, "*") && !slices.Contains(may, own) {
				t.Errorf("%s/%s imports %s, which the table does not allow", f.pkg, f.name, own)
			}
		}
	}
}

func TestPurePackagesOnlyCompute(t *testing.T) {
	for _, f := range load(t) {
		if f.test || !slices.Contains(pure, f.pkg) {
			continue
		}
		for _, imp := range f.imports() {
			if imp == "net/netip" || imp == "net/textproto" {
				continue
			}
			for _, bad := range impure {
				if imp == bad || strings.HasPrefix(imp, bad+"/") {
					t.Errorf("%s/%s imports %s, and the package is pure", f.pkg, f.name, imp)
				}
			}
		}
	}
}

func TestDependenciesHaveOneHome(t *testing.T) {
	for _, f := range load(t) {
		if f.test || slices.Contains(testOnly, f.pkg) {
			continue
		}
		for _, imp := range f.imports() {
			for dep, where := range homes {
				if (imp == dep || strings.HasPrefix(imp, dep+"/")) && !slices.Contains(where, f.pkg) {
					t.Errorf("%s/%s imports %s, whose home is %s", f.pkg, f.name, imp, strings.Join(where, ", "))
				}
			}
		}
	}
}

func TestPackagesAndNamesHaveComments(t *testing.T) {
	commented := map[string]bool{}
	seen := map[string]bool{}
	for _, f := range load(t) {
		if f.test {
			continue
		}
		seen[f.pkg] = true
		if f.ast.Doc != nil {
			commented[f.pkg] = true
		}
		for _, d := range f.ast.Decls {
			checkDecl(t, f, d)
		}
	}
	for p := range seen {
		if !commented[p] {
			t.Errorf("package %s has no comment", p)
		}
	}
}

func checkDecl(t *testing.T, f file, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && receiverExported(d) && !interfaceMethod(d.Name.Name) {
			t.Errorf("%s/%s: %s has no comment", f.pkg, f.name, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					t.Errorf("%s/%s: type %s has no comment", f.pkg, f.name, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						t.Errorf("%s/%s: %s has no comment", f.pkg, f.name, n.Name)
					}
				}
			}
		}
	}
}

// interfaceMethod names methods of the standard library's interfaces: their comment stands there.
func interfaceMethod(n string) bool {
	return slices.Contains([]string{"Error", "String", "Unwrap", "Len", "Less", "Swap", "Read", "Write", "Close", "Format", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "ServeHTTP", "Describe", "Collect"}, n)
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// TestNoForbiddenNames keeps out folder names that say nothing.
func TestNoForbiddenNames(t *testing.T) {
	for _, f := range load(t) {
		switch path.Base(f.pkg) {
		case "pkg", "util", "utils", "common", "types", "models", "helpers":
			t.Errorf("package %s: the name says nothing", f.pkg)
		}
	}
}

// TestErrorTextsAreLowerCase follows the habit of the language: an error text is a part of a sentence.
func TestErrorTextsAreLowerCase(t *testing.T) {
	for _, f := range load(t) {
		if f.test || f.pkg == "cmd/wyegate" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || !(x.Name == "errors" && sel.Sel.Name == "New" || x.Name == "fmt" && sel.Sel.Name == "Errorf") {
				return true
			}
			lit, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			s, err := strconv.Unquote(lit.Value)
			if err == nil && len(s) > 1 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'a' && s[1] <= 'z' && !properName(s) {
				t.Errorf("%s: error text %q begins with a capital", f.fset.Position(lit.Pos()), s)
			}
			return true
		})
	}
}

func properName(s string) bool {
	for _, n := range []string{"Content-Length", "Call-ID", "Via", "Route", "Max-Forwards", "Host", "Transfer-Encoding", "Request-URI", "Retry-After", "Record-Route", "Proxy-Require"} {
		if strings.HasPrefix(s, n) {
			return true
		}
	}
	return false
}
