// Merge types from the schemas of structured-merge-diff, as fixtures/server-side-apply/published.jsonl has them.
import { fieldElement } from "#apiserver/ssa/field-set.js";
import type { JsonValue } from "#apiserver/json.js";
import { type MergeType, deducedType, untypedAtomicType } from "#apiserver/ssa/typed-value.js";

/** A schema, and which of its types an object has. */
export interface PublishedSchema {
  readonly types: { readonly [name: string]: PublishedAtom };
  readonly root: PublishedRef;
}

interface PublishedRef {
  readonly name?: string;
  readonly inline?: PublishedAtom;
  readonly relationship?: string;
}

interface PublishedAtom {
  readonly scalar?: NonNullable<MergeType["scalar"]>;
  readonly list?: {
    readonly item: PublishedRef;
    readonly relationship: string;
    readonly keys: readonly string[] | null;
  };
  readonly map?: {
    readonly fields: readonly { readonly name: string; readonly type: PublishedRef; readonly default?: JsonValue }[];
    readonly rest?: PublishedRef;
    readonly relationship: string;
  };
}

/** Compiles a schema. */
export function compilePublished({ types, root }: PublishedSchema): MergeType {
  const named = new Map<string, MergeType>([
    ["__untyped_deduced_", deducedType],
    ["__untyped_atomic_", untypedAtomicType],
  ]);
  const typeNamed = (name: string): MergeType => {
    let type = named.get(name);
    if (type === undefined) named.set(name, (type = typeOfAtom(types[name] ?? {})));
    return type;
  };
  const typeOfRef = ({ name, inline = {}, relationship }: PublishedRef): MergeType => {
    const type = name === undefined ? typeOfAtom(inline) : typeNamed(name);
    if (relationship === undefined) return type;
    const isAtomic = relationship === "atomic";
    return {
      ...type,
      ...(type.map && { map: { ...type.map, isAtomic } }),
      ...(type.list && { list: { ...type.list, isAtomic } }),
    };
  };
  const lazily = (ref: PublishedRef) => {
    let type: MergeType | undefined;
    return () => (type ??= typeOfRef(ref));
  };
  const typeOfAtom = ({ scalar, list, map }: PublishedAtom): MergeType => ({
    ...(scalar && { scalar }),
    ...(list && {
      list: { isAtomic: list.relationship !== "associative", keys: list.keys ?? [], item: lazily(list.item) },
    }),
    ...(map && {
      map: {
        isAtomic: map.relationship === "atomic",
        fields: new Map(
          map.fields.map(({ name, type, ...rest }) => [
            name,
            { element: fieldElement(name), type: lazily(type), ...rest },
          ]),
        ),
        ...(map.rest && { rest: lazily(map.rest) }),
      },
    }),
  });
  return typeOfRef(root);
}
