/** What every form of a cache keeps of an object. */
type IdentityField = "apiVersion" | "kind" | "metadata";

type HeadOf<Path extends string> = Path extends `${infer Head}.${string}` ? Head : Path;

type RestOf<Path extends string, Field extends string> = Path extends `${Field}.${infer Rest}` ? Rest : never;

type FieldsOf<Value, Path extends string> = Value extends object
  ? {
      [Field in keyof Value as Field extends HeadOf<Path> ? Field : never]: Field extends Path
        ? Value[Field]
        : FieldsOf<Value[Field], RestOf<Path, Field & string>>;
    }
  : Value;

/**
 * What a cache keeps of a resource that is reduced to paths such as `status.phase`: its identity, its metadata, and what the paths lead to.
 *
 * Only that can be read, so code that reads more does not compile until the cache keeps more.
 */
export type Kept<Resource, Path extends string> = FieldsOf<Resource, Path | IdentityField>;
