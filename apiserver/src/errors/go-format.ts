export { quote } from "@gen-operator/schema";

export { floatText, goFormat, goTypeOf } from "@gen-operator/schema/definitions";
