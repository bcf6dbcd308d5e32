/** What every form of a cache keeps of an object. */
type IdentityField = "apiVersion" | "kind" | "metadata";

type HeadOf<Path extends string> = Path extends `${infer Head}.${string}` ? Head : Path;

type RestOf<Path extends string, Field extends string> = Path extends `${Field}.${infer Rest}` ? Rest : never;

declare const reduced: unique symbol;

/** What stands for a field that a cache does not keep. `Hint` is part of the compiler's message. */
interface NotKept<Hint extends string> {
  readonly [reduced]: Hint;
}

type KeptValue<Value, Path extends string, Field extends string, Hint extends string> = Field extends Path
  ? Value
  : Value extends object
    ? KeptPart<Value, RestOf<Path, Field>, Hint>
    : Value;

type KeptFields<Resource, Path extends string, Hint extends string> = {
  [Field in keyof Resource as Field extends HeadOf<Path> ? Field : never]: KeptValue<
    Resource[Field],
    Path,
    Field & string,
    Hint
  >;
};

/** Has the kept fields alone, so no other field can be read. */
type Readable<Resource, Path extends string, Hint extends string> = KeptFields<Resource, Path, Hint> & {
  readonly [reduced]?: never;
};

/** Has the other fields with a useless type, so the object is not taken for a whole object. */
type Unreadable<Resource, Path extends string, Hint extends string> = KeptFields<Resource, Path, Hint> & {
  readonly [Field in keyof Resource as Field extends HeadOf<Path> ? never : Field]-?: NotKept<Hint>;
} & { readonly [reduced]: true };

type KeptPart<Resource, Path extends string, Hint extends string> =
  Readable<Resource, Path, Hint> | Unreadable<Resource, Path, Hint>;

/**
 * What a cache keeps of a resource that is reduced to paths such as `status.phase`: its identity, its metadata, and what the paths lead to.
 *
 * Code that reads another field does not compile, nor does code that passes the object on as a whole one: a field of a union can be read
 * only if all members have it, and a union is assignable only if all members are. The message contains `Hint`. A whole object is assignable.
 */
export type Kept<Resource, Path extends string, Hint extends string> = KeptPart<Resource, Path | IdentityField, Hint>;
