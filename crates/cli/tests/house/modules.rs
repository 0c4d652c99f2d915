//! The modules at the top of a crate form no circle: each can be read, and moved, with those it imports and no others.
//! What is in one folder below them may belong together.
//!
//! What is compared is what the code names: paths from the crate's root, and those up to it. Tests of a module may use
//! any other; documentation may link to any.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// What a module imports: the other module, and a file that does it.
type Imports = BTreeMap<String, BTreeMap<String, PathBuf>>;

#[test]
fn the_modules_of_a_crate_form_no_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut told = String::new();
    for name in crates(&root) {
        let source = root.join(&name).join("src");
        let imports = imports(&source);
        for circle in circles(&imports) {
            told.push_str(&format!("{name}: {}\n", circle.join(", ")));
            for (from, to) in circle
                .iter()
                .flat_map(|from| circle.iter().map(move |to| (from, to)))
            {
                if let Some(file) = imports[from].get(to) {
                    let file = file.strip_prefix(&root).unwrap_or(file);
                    told.push_str(&format!("    {from} imports {to}: {}\n", file.display()));
                }
            }
        }
    }
    assert!(told.is_empty(), "circles of modules:\n{told}");
}

/// The folders of the workspace's crates.
fn crates(root: &Path) -> Vec<String> {
    let folders = fs::read_dir(root.join("crates")).expect("crates/ can be listed");
    let mut names: Vec<String> = folders
        .map(|folder| {
            let folder = folder.expect("an entry of crates/").file_name();
            format!("crates/{}", folder.into_string().expect("a UTF-8 folder name"))
        })
        .collect();
    names.sort();
    names
}

/// What the top modules of a crate import of each other.
fn imports(source: &Path) -> Imports {
    let top = ["lib.rs", "main.rs"].map(|file| source.join(file));
    let top = top.iter().find(|file| file.exists()).expect("a crate has a root");
    let exports = exports(&tokens(top));
    let mut imports = Imports::new();
    for entry in fs::read_dir(source).expect("a source folder can be listed") {
        let path = entry.expect("an entry of a source folder").path();
        let module = path
            .file_stem()
            .expect("a name")
            .to_str()
            .expect("UTF-8")
            .to_owned();
        if path != *top && !matches!(module.as_str(), "lib" | "main") {
            imports.entry(module).or_default();
        }
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for module in &modules {
        let file = source.join(module).with_extension("rs");
        let mut files: Vec<(PathBuf, usize)> = file.exists().then_some((file, 1)).into_iter().collect();
        files.extend(files_below(&source.join(module), 1));
        for (file, depth) in files {
            let mut named = BTreeSet::new();
            names(tokens(&file), depth, &mut named);
            for name in named {
                let other = exports.get(&name).unwrap_or(&name);
                if modules.contains(other) && other != module {
                    let known = imports.get_mut(module).expect("a module of the list");
                    known.entry(other.clone()).or_insert_with(|| file.clone());
                }
            }
        }
    }
    imports
}

/// The files of a folder that is a module at a depth below the root, each with the depth of its own module. Tests in
/// files of their own are left out.
fn files_below(folder: &Path, depth: usize) -> Vec<(PathBuf, usize)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry of a source folder").path();
        match path.file_name().and_then(|name| name.to_str()).expect("UTF-8") {
            "tests.rs" | "tests" => {}
            "mod.rs" => files.push((path, depth)),
            _ if path.is_dir() => files.extend(files_below(&path, depth + 1)),
            name if name.ends_with(".rs") => files.push((path, depth + 1)),
            _ => {}
        }
    }
    files.sort();
    files
}

fn tokens(file: &Path) -> TokenStream {
    let text = fs::read_to_string(file).expect("a source file can be read");
    text.parse().expect("a source file is Rust")
}

/// The names that the root has of its modules' items (`pub use module::{Item, Other}`), and of which module each is.
fn exports(root: &TokenStream) -> BTreeMap<String, String> {
    let tokens: Vec<TokenTree> = root.clone().into_iter().collect();
    let mut exports = BTreeMap::new();
    for (index, token) in tokens.iter().enumerate() {
        if word(token) != Some("use".to_owned()) {
            continue;
        }
        let path: Vec<TokenTree> = tokens[index + 1..]
            .iter()
            .take_while(|token| token.to_string() != ";")
            .cloned()
            .collect();
        if let Some(module) = path.first().and_then(word) {
            for item in path[1..].iter().flat_map(words) {
                exports.insert(item, module.clone());
            }
        }
    }
    exports
}

fn words(token: &TokenTree) -> Vec<String> {
    match token {
        TokenTree::Group(group) => group
            .stream()
            .into_iter()
            .flat_map(|token| words(&token))
            .collect(),
        token => word(token).into_iter().collect(),
    }
}

fn word(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    }
}

/// Adds the names that code in a module at a depth below the root has of the root: what follows `crate::`, and as many
/// `super::` as there are modules above.
fn names(code: TokenStream, depth: usize, named: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let is_path = |index: usize| {
        (0..2).all(|colon| {
        matches!(tokens.get(index + colon), Some(TokenTree::Punct(mark)) if mark.as_char() == ':')
    })
    };
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        if is_attribute_of_tests(&tokens[index..]) {
            // The item that it is for ends with a block or a semicolon.
            while tokens.get(index).is_some_and(|token| !is_end_of_item(token)) {
                index += 1;
            }
            index += 1;
            continue;
        }
        let is_module = index > 1 && word(&tokens[index - 2]) == Some("mod".to_owned());
        match token {
            TokenTree::Group(group) => {
                let is_module = is_module && group.delimiter() == Delimiter::Brace;
                names(group.stream(), depth + usize::from(is_module), named);
            }
            token => {
                let mut above = match word(token).as_deref() {
                    Some("crate") => Some(depth),
                    Some("super") => Some(1),
                    _ => None,
                };
                while let Some(steps) = above
                    && is_path(index + 1)
                {
                    index += 3;
                    match &tokens[index] {
                        token if word(token).as_deref() == Some("super") => above = Some(steps + 1),
                        token if steps == depth => {
                            named.extend(heads(token));
                            above = None;
                        }
                        _ => above = None,
                    }
                }
            }
        }
        index += 1;
    }
}

/// The first name of each path in what follows `::`.
fn heads(token: &TokenTree) -> Vec<String> {
    let TokenTree::Group(group) = token else {
        return word(token).into_iter().collect();
    };
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let paths = tokens.split(|token| token.to_string() == ",");
    paths.filter_map(|path| path.first().and_then(word)).collect()
}

/// Whether `#[cfg(test)]` is here.
fn is_attribute_of_tests(tokens: &[TokenTree]) -> bool {
    match tokens {
        [TokenTree::Punct(mark), TokenTree::Group(group), ..] if mark.as_char() == '#' => {
            let attribute = group.stream().to_string();
            attribute.starts_with("cfg") && attribute.contains("test") && !attribute.contains("not")
        }
        _ => false,
    }
}

fn is_end_of_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => token.to_string() == ";",
    }
}

/// The sets of modules that all lead to each other, of more than one each.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = imports
        .keys()
        .map(|start| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&String> = imports[start].keys().collect();
            while let Some(module) = next.pop() {
                if reached.insert(module) {
                    next.extend(imports[module].keys());
                }
            }
            (start, reached)
        })
        .collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    for module in imports.keys().filter(|module| reached[module].contains(module)) {
        if circles.iter().flatten().all(|known| known != module) {
            let circle = imports.keys();
            let circle =
                circle.filter(|other| reached[module].contains(other) && reached[other].contains(module));
            circles.push(circle.cloned().collect());
        }
    }
    circles
}
