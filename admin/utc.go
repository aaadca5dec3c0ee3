package admin

import (
	"reflect"
	"time"
)

var timeType = reflect.TypeFor[time.Time]()

// utc gives v with all its times in UTC, as the contract wants them; the node's own values stay as they are.
func utc(v any) any {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return v
	}
	return inUTC(rv).Interface()
}

// inUTC copies what has times in it, and only that.
func inUTC(v reflect.Value) reflect.Value {
	if v.Type() == timeType {
		return reflect.ValueOf(v.Interface().(time.Time).UTC())
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return v
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(inUTC(v.Elem()))
		return p
	case reflect.Struct:
		s := reflect.New(v.Type()).Elem()
		s.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				s.Field(i).Set(inUTC(v.Field(i)))
			}
		}
		return s
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		l := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			l.Index(i).Set(inUTC(v.Index(i)))
		}
		return l
	case reflect.Map:
		if v.IsNil() || v.Type().Elem().Kind() != reflect.Struct {
			return v
		}
		m := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			m.SetMapIndex(it.Key(), inUTC(it.Value()))
		}
		return m
	}
	return v
}
