// Recording of what the tests of structured-merge-diff call; see record-merge-cases.ts.
package typed

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Record prints one line of the recording.
func Record(entry map[string]interface{}) {
	bytes, err := json.Marshal(entry)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, "\nRECORD %s\n", bytes)
}

// Plain makes a value of YAML one of JSON.
func Plain(in interface{}) interface{} {
	switch typed := in.(type) {
	case map[string]interface{}:
		out := map[string]interface{}{}
		for key, item := range typed {
			out[key] = Plain(item)
		}
		return out
	case map[interface{}]interface{}:
		out := map[string]interface{}{}
		for key, item := range typed {
			out[fmt.Sprint(key)] = Plain(item)
		}
		return out
	case []interface{}:
		out := []interface{}{}
		for _, item := range typed {
			out = append(out, Plain(item))
		}
		return out
	default:
		return in
	}
}

// PlainValue is the value of an object.
func PlainValue(tv *TypedValue) interface{} {
	if tv == nil || tv.value == nil {
		return nil
	}
	return Plain(tv.value.Unstructured())
}

// PlainSet is a set as FieldsV1.
func PlainSet(set *fieldpath.Set) interface{} {
	if set == nil {
		return nil
	}
	bytes, err := set.ToJSON()
	if err != nil {
		panic(err)
	}
	return json.RawMessage(bytes)
}

func plainError(err error) interface{} {
	if err == nil {
		return nil
	}
	return err.Error()
}

// PlainType is a type with its schema.
func PlainType(s *schema.Schema, ref schema.TypeRef) interface{} {
	if s == nil || len(s.Types) > 60 {
		return nil
	}
	types := map[string]interface{}{}
	for _, each := range s.Types {
		types[each.Name] = plainAtom(each.Atom)
	}
	return map[string]interface{}{"types": types, "root": plainRef(ref)}
}

func plainRef(ref schema.TypeRef) interface{} {
	out := map[string]interface{}{}
	if ref.NamedType != nil {
		out["name"] = *ref.NamedType
	} else {
		out["inline"] = plainAtom(ref.Inlined)
	}
	if ref.ElementRelationship != nil {
		out["relationship"] = string(*ref.ElementRelationship)
	}
	return out
}

func plainAtom(atom schema.Atom) interface{} {
	out := map[string]interface{}{}
	if atom.Scalar != nil {
		out["scalar"] = string(*atom.Scalar)
	}
	if atom.List != nil {
		out["list"] = map[string]interface{}{
			"item": plainRef(atom.List.ElementType), "relationship": string(atom.List.ElementRelationship), "keys": atom.List.Keys,
		}
	}
	if atom.Map != nil {
		fields := []interface{}{}
		for _, field := range atom.Map.Fields {
			plain := map[string]interface{}{"name": field.Name, "type": plainRef(field.Type)}
			if field.Default != nil {
				plain["default"] = Plain(field.Default)
			}
			fields = append(fields, plain)
		}
		plain := map[string]interface{}{"fields": fields, "relationship": string(atom.Map.ElementRelationship)}
		rest := atom.Map.ElementType
		if rest.NamedType != nil || rest.Inlined.Scalar != nil || rest.Inlined.List != nil || rest.Inlined.Map != nil {
			plain["rest"] = plainRef(rest)
		}
		out["map"] = plain
	}
	return out
}

func recordValidate(tv TypedValue, allowsDuplicates bool, err error) {
	Record(map[string]interface{}{
		"op": "validate", "type": PlainType(tv.schema, tv.typeRef), "value": PlainValue(&tv),
		"duplicates": allowsDuplicates, "error": plainError(err),
	})
}

func recordSet(tv TypedValue, set *fieldpath.Set, err error) {
	Record(map[string]interface{}{
		"op": "set", "type": PlainType(tv.schema, tv.typeRef), "value": PlainValue(&tv), "set": PlainSet(set), "error": plainError(err),
	})
}

func recordMerge(tv TypedValue, config, out *TypedValue, err error) {
	Record(map[string]interface{}{
		"op": "merge", "type": PlainType(tv.schema, tv.typeRef), "live": PlainValue(&tv), "config": PlainValue(config),
		"value": PlainValue(out), "error": plainError(err),
	})
}

func recordCompare(tv TypedValue, after *TypedValue, found *Comparison, err error) {
	entry := map[string]interface{}{
		"op": "compare", "type": PlainType(tv.schema, tv.typeRef), "before": PlainValue(&tv), "after": PlainValue(after),
		"error": plainError(err),
	}
	if found != nil {
		entry["removed"], entry["modified"], entry["added"] = PlainSet(found.Removed), PlainSet(found.Modified), PlainSet(found.Added)
	}
	Record(entry)
}

func recordRemove(tv TypedValue, items *fieldpath.Set) func(**TypedValue) {
	live := PlainValue(&tv)
	return func(out **TypedValue) {
		Record(map[string]interface{}{
			"op": "remove", "type": PlainType(tv.schema, tv.typeRef), "live": live, "set": PlainSet(items), "value": PlainValue(*out),
			"error": nil,
		})
	}
}

func recordReconcile(fields *fieldpath.Set, tv *TypedValue) func(**fieldpath.Set, *error) {
	before := PlainSet(fields)
	return func(set **fieldpath.Set, err *error) {
		Record(map[string]interface{}{
			"op": "reconcile", "type": PlainType(tv.schema, tv.typeRef), "before": before, "set": PlainSet(*set), "error": plainError(*err),
		})
	}
}
