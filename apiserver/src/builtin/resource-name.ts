/** Returns the name of a resource across its versions, for example `pods`, `widgets.example.com`. */
export function resourceNameOf(type: { readonly plural: string; readonly group: string }): string {
  return type.group === "" ? type.plural : `${type.plural}.${type.group}`;
}
