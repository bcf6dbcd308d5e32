// Creates objects that differ from a valid one in one place, regardless of the schema. A server decides whether they are valid.

/** An object with one change. */
export interface AlteredObject {
  /** A description of the change: `spec.replicas is -1`. */
  readonly change: string;
  readonly object: object;
}

type Json = Record<string, unknown>;

const VALUES: readonly unknown[] = [
  ...[null, "", " ", "x", "X_y", "a/b", "-", "é", "1", "x\n", "x".repeat(64), "x".repeat(254)],
  ...[0, -1, 1.5, 2 ** 31 - 1, 2 ** 31, 2 ** 53, true, [], {}, [null], [""], { a: null }, { "": "x" }, { "-": 1 }],
];

// The request determines the type and namespace of an object, and the server sets the other fields.
const LEFT = /^(?:apiVersion|kind|metadata|metadata\.(?:namespace|generateName|resourceVersion))$/;

/** Returns all objects that differ in one value, in a missing or unknown field, or in a duplicate list item. */
export function alteredObjects(object: object): AlteredObject[] {
  return alterationsOf(object, "").map(({ change, value }) => ({ change, object: value as object }));
}

interface Alteration {
  readonly change: string;
  readonly value: unknown;
}

function alterationsOf(value: unknown, path: string): Alteration[] {
  if (Array.isArray(value))
    return [
      ...(value.length === 0 ? [] : [{ change: `${path}[0] is there twice`, value: [...value, value[0]] }]),
      ...value.flatMap((item: unknown, index) =>
        [...replacements(`${path}[${index}]`), ...alterationsOf(item, `${path}[${index}]`)].map((each) => ({
          ...each,
          value: value.with(index, each.value),
        })),
      ),
    ];
  if (typeof value !== "object" || value === null) return [];
  const unknown = {
    change: `${path === "" ? "" : `${path}.`}noSuchField is there`,
    value: { ...value, noSuchField: 1 },
  };
  return [
    unknown,
    ...Object.entries(value).flatMap(([name, member]) => {
      const at = path === "" ? name : `${path}.${name}`;
      const below = alterationsOf(member, at);
      const here = LEFT.test(at) ? [] : replacements(at);
      const changed = [...here, ...below].map((each) => ({ ...each, value: { ...value, [name]: each.value } }));
      const { [name]: _, ...rest } = value as Json;
      return LEFT.test(at) ? changed : [...changed, { change: `${at} is missing`, value: rest }];
    }),
  ];
}

function replacements(path: string): Alteration[] {
  return VALUES.map((value) => ({ change: `${path} is ${JSON.stringify(value).slice(0, 30)}`, value }));
}
