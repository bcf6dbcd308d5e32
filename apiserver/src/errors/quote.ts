export { quote } from "@gen-operator/schema";
