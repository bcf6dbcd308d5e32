/** Returns the name of a resource without its version, for example `pods` or `widgets.example.com`. */
export function resourceNameOf(type: { readonly plural: string; readonly group: string }): string {
  return type.group === "" ? type.plural : `${type.plural}.${type.group}`;
}
