package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

type goType struct {
	name   string // alias.Name
	isKind bool   // embeds TypeMeta and ObjectMeta
	typed  bool   // embeds TypeMeta: has apiVersion and kind in JSON
	atomic bool
	enum   []string
	fields []field
}

type field struct {
	json     string // empty when inlined
	number   string // protobuf field number, or - where the field does not travel in protobuf
	typ      string // such as *string, []core.Container, map[string]quantity
	ref      string // the struct or enumeration it refers to
	goName   string // of a text with a type of its own, such as v1beta1.CRIName
	flags    string
	attrs    []string
	docMarks map[string]string
}

// Types whose JSON or protobuf form is their own.
var special = map[string]string{
	"meta.Time": "time", "meta.MicroTime": "microtime", "meta.Duration": "duration", "meta.FieldsV1": "fields",
	"resource.Quantity": "quantity", "intstr.IntOrString": "intstr", "runtime.RawExtension": "raw",
	"types.UID": "string", "types.NodeName": "string", "runtime.Unknown": "raw",
	"authentication.ExtraValue": "strings", "authorization.ExtraValue": "strings", "certificates.ExtraValue": "strings",
	"garden.CapabilityValues": "strings", "apiextensions.JSON": "json", "v1.JSON": "json", "apiextensions.JSONSchemaPropsOrArray": "schemaOrArray",
	"apiextensions.JSONSchemaPropsOrBool":        "schemaOrBool",
	"apiextensions.JSONSchemaPropsOrStringArray": "schemaOrStrings",
}

var basic = map[string]bool{"string": true, "bool": true, "int32": true, "int64": true, "float64": true, "byte": true}

type packageScope struct {
	source  source
	aliases map[string]ast.Expr
	enums   map[string][]string
	consts  map[string]string
	structs map[string]*ast.StructType
	docs    map[string]map[string]string
}

// Every parsed package by alias.
var scopes = map[string]*packageScope{}

func parsePackage(src source) error {
	folder, err := packageFolder(src)
	if err != nil {
		return err
	}
	notTest := func(info fs.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }
	packages, err := parser.ParseDir(token.NewFileSet(), folder, notTest, parser.ParseComments)
	if err != nil {
		return err
	}
	scope := &packageScope{src, map[string]ast.Expr{}, map[string][]string{}, map[string]string{},
		map[string]*ast.StructType{}, map[string]map[string]string{}}
	for _, pkg := range packages {
		for _, name := range sortedFiles(pkg.Files) {
			scope.collect(pkg.Files[name])
		}
	}
	scopes[src.alias] = scope
	return nil
}

// Types adds what a package declares to `known`, by alias.Name.
func (s *packageScope) types(known map[string]*goType) {
	for name, structure := range s.structs {
		known[s.source.alias+"."+name] = s.convert(name, structure)
	}
	for name, values := range s.enums {
		if _, marked := s.docs[name]["enum"]; marked {
			sort.Strings(values)
			known[s.source.alias+"."+name] = &goType{name: s.source.alias + "." + name, enum: values}
		}
	}
}

func sortedFiles(files map[string]*ast.File) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (s *packageScope) collect(file *ast.File) {
	imports := map[string]string{}
	for _, imported := range file.Imports {
		path, _ := strconv.Unquote(imported.Path.Value)
		addImport(imports, imported, path)
	}
	// Files of one package may import by different names: put our alias in place of each.
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if ident, ok := selector.X.(*ast.Ident); ok && imports[ident.Name] != "" {
				ident.Name = imports[ident.Name]
				return false
			}
		}
		return true
	})
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.addType(general, spec)
			case *ast.ValueSpec:
				s.addConstant(general, spec)
			}
		}
	}
}

func addImport(imports map[string]string, imported *ast.ImportSpec, path string) {
	local := path[strings.LastIndex(path, "/")+1:]
	if imported.Name != nil {
		local = imported.Name.Name
	}
	for _, other := range sources {
		if path == other.module+"/"+other.folder {
			imports[local] = other.alias
			return
		}
	}
	imports[local] = path[strings.LastIndex(path, "/")+1:]
}

func (s *packageScope) addType(general *ast.GenDecl, spec *ast.TypeSpec) {
	doc := spec.Doc
	if doc == nil {
		doc = general.Doc
	}
	s.docs[spec.Name.Name] = marks(doc)
	if structure, ok := spec.Type.(*ast.StructType); ok {
		s.structs[spec.Name.Name] = structure
	} else {
		s.aliases[spec.Name.Name] = spec.Type
	}
}

func (s *packageScope) addConstant(general *ast.GenDecl, spec *ast.ValueSpec) {
	if general.Tok != token.CONST || len(spec.Values) != len(spec.Names) {
		return
	}
	for i, name := range spec.Names {
		value, typ := spec.Values[i], spec.Type
		if call, ok := value.(*ast.CallExpr); ok && len(call.Args) == 1 {
			value, typ = call.Args[0], call.Fun
		}
		text, known := s.constantText(value)
		s.consts[name.Name] = text
		if ident, ok := typ.(*ast.Ident); ok && known {
			s.enums[ident.Name] = append(s.enums[ident.Name], text)
		}
	}
}

// ConstantText is the value of a literal or of another package's constant, and whether it is one of these.
func (s *packageScope) constantText(value ast.Expr) (string, bool) {
	switch value := value.(type) {
	case *ast.BasicLit:
		if value.Kind == token.STRING {
			text, err := strconv.Unquote(value.Value)
			return text, err == nil
		}
		return value.Value, true
	case *ast.SelectorExpr:
		if owner := scopes[value.X.(*ast.Ident).Name]; owner != nil {
			text, known := owner.consts[value.Sel.Name]
			return text, known
		}
	}
	return "", false
}

// Marks are the `+name` and `+name=value` lines of a comment.
func marks(doc *ast.CommentGroup) map[string]string {
	found := map[string]string{}
	if doc == nil {
		return found
	}
	for _, line := range strings.Split(doc.Text(), "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "+") {
			continue
		}
		name, value, _ := strings.Cut(line[1:], "=")
		if name == "listMapKey" && found[name] != "" {
			value = found[name] + "," + value
		}
		found[name] = value
	}
	return found
}

func (s *packageScope) convert(name string, structure *ast.StructType) *goType {
	t := &goType{name: s.source.alias + "." + name, atomic: s.docs[name]["structType"] == "atomic"}
	for _, astField := range structure.Fields.List {
		f, ok := s.convertField(astField)
		if f.typ == "meta.TypeMeta" || f.typ == "TypeMeta" {
			t.typed = true
		} else if ok {
			t.fields = append(t.fields, f)
		}
	}
	hasMeta := len(t.fields) > 0 && t.fields[0].typ == "meta.ObjectMeta"
	t.isKind = t.typed && hasMeta && s.source.alias != "meta"
	return t
}

func (s *packageScope) convertField(astField *ast.Field) (field, bool) {
	f := field{number: "-", docMarks: marks(astField.Doc)}
	f.typ, f.ref = s.typeOf(astField.Type)
	f.goName = s.goName(astField.Type)
	if astField.Tag == nil {
		return f, false
	}
	raw, _ := strconv.Unquote(astField.Tag.Value)
	tag := reflect.StructTag(raw)
	name, options, _ := strings.Cut(tag.Get("json"), ",")
	if name == "-" {
		return f, false
	}
	f.json = name
	if parts := strings.Split(tag.Get("protobuf"), ","); len(parts) > 1 {
		f.number = parts[1]
	}
	f.setFlags(options)
	f.setAttrs(tag, s)
	return f, true
}

// SetFlags: ! required, + present in JSON even when empty, z a zero struct is left out.
func (f *field) setFlags(options string) {
	omitEmpty := strings.Contains(options, "omitempty")
	_, optional := f.docMarks["optional"]
	_, required := f.docMarks["required"]
	if required || (!optional && !omitEmpty && !strings.Contains(options, "inline")) {
		f.flags += "!"
	}
	if !omitEmpty && !strings.Contains(options, "omitzero") {
		f.flags += "+"
	}
	if strings.Contains(options, "omitzero") {
		f.flags += "z"
	}
}

func (f *field) setAttrs(tag reflect.StructTag, s *packageScope) {
	switch f.docMarks["listType"] {
	case "map":
		f.attrs = append(f.attrs, "keys:"+f.docMarks["listMapKey"])
	case "set", "atomic":
		f.attrs = append(f.attrs, f.docMarks["listType"])
	}
	if f.docMarks["mapType"] == "atomic" || f.docMarks["structType"] == "atomic" {
		f.attrs = append(f.attrs, "atomic")
	}
	if strategy := tag.Get("patchStrategy"); strategy != "" {
		f.attrs = append(f.attrs, "patch:"+strategy+":"+tag.Get("patchMergeKey"))
	}
	if value, ok := f.docMarks["default"]; ok {
		if strings.HasPrefix(value, "ref(") {
			value = strconv.Quote(s.consts[strings.TrimSuffix(value[4:], ")")])
		}
		f.attrs = append(f.attrs, "default:"+value)
	}
}

func (s *packageScope) typeOf(expr ast.Expr) (typ, ref string) {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		inner, ref := s.typeOf(expr.X)
		return "*" + inner, ref
	case *ast.ArrayType:
		inner, ref := s.typeOf(expr.Elt)
		if inner == "byte" || inner == "uint8" {
			return "bytes", ""
		}
		return "[]" + inner, ref
	case *ast.MapType:
		inner, ref := s.typeOf(expr.Value)
		return "map[string]" + inner, ref
	case *ast.SelectorExpr:
		return s.named(expr.X.(*ast.Ident).Name, expr.Sel.Name)
	case *ast.Ident:
		if basic[expr.Name] {
			return expr.Name, ""
		}
		return s.named(s.source.alias, expr.Name)
	}
	return fmt.Sprintf("%T", expr), ""
}

// GoName is the name that Go prints of a text that has a type of its own, in a list, a map or by itself.
func (s *packageScope) goName(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return s.goName(expr.X)
	case *ast.ArrayType:
		return s.goName(expr.Elt)
	case *ast.MapType:
		return s.goName(expr.Value)
	case *ast.SelectorExpr:
		if alias := expr.X.(*ast.Ident).Name; scopes[alias] != nil {
			return scopes[alias].goName(expr.Sel)
		}
		if typ, _ := s.typeOf(expr); typ == "string" {
			return expr.X.(*ast.Ident).Name + "." + expr.Sel.Name
		}
	case *ast.Ident:
		if typ, _ := s.typeOf(expr); typ == "string" && !basic[expr.Name] {
			return s.source.folder[strings.LastIndex(s.source.folder, "/")+1:] + "." + expr.Name
		}
	}
	return ""
}

// Named resolves a named type: a special one, an alias of something basic, an enumeration, or a struct.
func (s *packageScope) named(alias, name string) (typ, ref string) {
	full := alias + "." + name
	if word, ok := special[full]; ok {
		return word, ""
	}
	if owner := scopes[alias]; owner != nil {
		if target, ok := owner.aliases[name]; ok {
			if _, marked := owner.docs[name]["enum"]; marked && !ofGardener {
				return full, full
			}
			return owner.typeOf(target)
		}
	}
	return full, full
}

func (t *goType) write(out *bufio.Writer, alias string) {
	local := func(text string) string { return strings.Replace(text, alias+".", "", 1) }
	if t.enum != nil {
		fmt.Fprintf(out, "%s = %s\n", local(t.name), strings.Join(t.enum, "|"))
		return
	}
	suffix := ""
	if t.typed {
		suffix = " kind"
	}
	if t.atomic {
		suffix += " atomic"
	}
	fmt.Fprintf(out, "%s%s\n", local(t.name), suffix)
	for _, f := range t.fields {
		words := []string{f.json, f.number, local(f.typ)}
		if f.json == "" {
			words[0] = "<"
		}
		if f.flags != "" {
			words = append(words, f.flags)
		}
		words = append(words, f.attrs...)
		if ofGardener && f.goName != "" {
			words = append(words, "as:"+f.goName)
		}
		fmt.Fprintf(out, " %s\n", strings.Join(words, " "))
	}
}
