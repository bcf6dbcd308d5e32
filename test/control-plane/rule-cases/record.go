// Recording of the rules that the tests of k8s.io/apiextensions-apiserver evaluate; see record-rule-cases.ts.
package cel

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type plain = map[string]interface{}

// recordValidate prints one line: a schema with its rules, a value, and what came of them.
func recordValidate(s *Validator, sts *schema.Structural, obj, oldObj interface{}, budget int64, ratchets bool, errs field.ErrorList, left int64) {
	if s == nil || sts == nil {
		return
	}
	errors := []interface{}{}
	for _, err := range errs {
		errors = append(errors, plain{"type": string(err.Type), "field": err.Field, "detail": err.Detail})
	}
	bytes, err := json.Marshal(plain{
		"schema": plainStructural(sts), "root": s.isResourceRoot, "object": obj, "old": oldObj, "budget": budget,
		"ratchets": ratchets, "errors": errors, "left": left,
	})
	if err != nil {
		bytes, _ = json.Marshal(plain{"lacks": "its value is none of JSON"})
	}
	fmt.Fprintf(os.Stdout, "\nRECORD %s\n", bytes)
}

func plainStructural(s *schema.Structural) plain {
	out := plain{}
	if s.ValueValidation != nil {
		plainValues(out, s.ValueValidation)
	}
	if s.Type != "" {
		out["type"] = s.Type
	}
	if s.Nullable {
		out["nullable"] = true
	}
	if s.Default.Object != nil {
		out["default"] = s.Default.Object
	}
	if s.XPreserveUnknownFields {
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	if s.XEmbeddedResource {
		out["x-kubernetes-embedded-resource"] = true
	}
	if s.XIntOrString {
		out["x-kubernetes-int-or-string"] = true
	}
	if s.XListType != nil {
		out["x-kubernetes-list-type"] = *s.XListType
	}
	if s.XMapType != nil {
		out["x-kubernetes-map-type"] = *s.XMapType
	}
	if len(s.XListMapKeys) > 0 {
		out["x-kubernetes-list-map-keys"] = s.XListMapKeys
	}
	if len(s.XValidations) > 0 {
		out["x-kubernetes-validations"] = s.XValidations
	}
	if s.Items != nil {
		out["items"] = plainStructural(s.Items)
	}
	if len(s.Properties) > 0 {
		members := plain{}
		for name := range s.Properties {
			member := s.Properties[name]
			members[name] = plainStructural(&member)
		}
		out["properties"] = members
	}
	if s.AdditionalProperties != nil {
		if s.AdditionalProperties.Structural != nil {
			out["additionalProperties"] = plainStructural(s.AdditionalProperties.Structural)
		} else {
			out["additionalProperties"] = s.AdditionalProperties.Bool
		}
	}
	return out
}

func plainNested(n *schema.NestedValueValidation) plain {
	out := plain{}
	plainValues(out, &n.ValueValidation)
	if len(n.XValidations) > 0 {
		out["x-kubernetes-validations"] = n.XValidations
	}
	if n.Items != nil {
		out["items"] = plainNested(n.Items)
	}
	if n.AdditionalProperties != nil {
		out["additionalProperties"] = plainNested(n.AdditionalProperties)
	}
	if len(n.Properties) > 0 {
		members := plain{}
		for name := range n.Properties {
			member := n.Properties[name]
			members[name] = plainNested(&member)
		}
		out["properties"] = members
	}
	return out
}

// What limits a value matters to its estimated cost, and to branches.
func plainValues(out plain, v *schema.ValueValidation) {
	if v.Format != "" {
		out["format"] = v.Format
	}
	for name, limit := range map[string]*int64{
		"maxLength": v.MaxLength, "minLength": v.MinLength, "maxItems": v.MaxItems, "minItems": v.MinItems,
		"maxProperties": v.MaxProperties, "minProperties": v.MinProperties,
	} {
		if limit != nil {
			out[name] = *limit
		}
	}
	if len(v.Required) > 0 {
		out["required"] = v.Required
	}
	if len(v.Enum) > 0 {
		values := []interface{}{}
		for _, each := range v.Enum {
			values = append(values, each.Object)
		}
		out["enum"] = values
	}
	if len(v.AllOf) > 0 {
		branches := []interface{}{}
		for index := range v.AllOf {
			branches = append(branches, plainNested(&v.AllOf[index]))
		}
		out["allOf"] = branches
	}
}
