export { floatText, goFormat, goTypeOf } from "@gen-operator/schema/definitions";
