// Package testnumbers changes and reads all numbers of a struct, so that no test forgets a field.
package testnumbers

import (
	"fmt"
	"reflect"
)

// Set sets all integers and all floats of the struct that a pointer points to, also those behind
// pointers, and returns how many there are.
func Set(pointer any, integer int64, float float64) (n int) {
	visit("", reflect.ValueOf(pointer).Elem(), func(_ string, v reflect.Value) {
		n++
		if v.CanInt() {
			v.SetInt(integer)
		} else {
			v.SetFloat(float)
		}
	})
	return n
}

// Each calls found with the name and the value of each number that Set sets.
func Each(pointer any, found func(name string, value float64)) {
	visit("", reflect.ValueOf(pointer).Elem(), func(name string, v reflect.Value) {
		if v.CanInt() {
			found(name, float64(v.Int()))
		} else {
			found(name, v.Float())
		}
	})
}

func visit(name string, v reflect.Value, number func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		visit(name, v.Elem(), number)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				visit(name+"."+field.Name, v.Field(i), number)
			}
		}
	case reflect.Int, reflect.Int64, reflect.Float64:
		number(name, v)
	case reflect.Bool, reflect.String, reflect.Slice:
	default:
		panic(fmt.Sprintf("%s is of the kind %s, which this package doesn't know", name, v.Kind()))
	}
}
