package config

import (
	"reflect"
	"strings"
)

// setDefaults fills a struct with what its tags say.
func setDefaults(into any) {
	v := reflect.ValueOf(into).Elem()
	for _, f := range fieldsOf(v.Type()) {
		fv := v.FieldByIndex(f.index)
		switch {
		case f.hasDef && f.def != "":
			setDefault(fv, f)
		case fv.Kind() == reflect.Struct && scalarOf(fv.Type()) == nil:
			setDefaults(fv.Addr().Interface())
		}
	}
}

func setDefault(v reflect.Value, f *field) {
	if v.Type() == reflect.TypeFor[Path]() {
		v.Set(reflect.ValueOf(Path{Text: f.def, Abs: f.def}))
		return
	}
	if v.Kind() != reflect.Slice {
		scalarOf(v.Type()).parse(f.def, f, v)
		return
	}
	parts := strings.Split(f.def, ",")
	list := reflect.MakeSlice(v.Type(), len(parts), len(parts))
	for i, p := range parts {
		scalarOf(v.Type().Elem()).parse(p, f, list.Index(i))
	}
	v.Set(list)
}
