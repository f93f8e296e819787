// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who imports whom: no file of a crate imports itself over others, and in the two libraries imports go downwards.
//!
//! Read from the text, outside of test modules: paths that begin with `crate::` or `super::`, and the modules that a
//! file declares.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Every file below a source folder with its module path, such as `codec::szx::cpu`.
fn files(root: &Path, at: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(root, &path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(root).unwrap().with_extension("");
            let parts: Vec<&str> = name.iter().map(|p| p.to_str().unwrap()).collect();
            let parts = if parts.last() == Some(&"mod") { &parts[..parts.len() - 1] } else { &parts[..] };
            if !parts.iter().any(|p| ["tests", "bin"].contains(p)) {
                found.insert(parts.join("::"), path);
            }
        }
    }
}

/// Paths of a text: `a::{b, c::d}` counts as `a::b` and `a::c::d`.
fn paths(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (at, _) in text.match_indices("crate::").chain(text.match_indices("super::")) {
        if at > 0 && text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let end =
            text[at..].find([';', '(', ')', '<', '>', ' ', ',', '\n', '|', ']', '!']).map_or(text.len(), |n| at + n);
        let head = &text[at..end];
        match text[at..].find('{').filter(|n| at + n <= end && head.ends_with("::{") || head.contains("::{")) {
            None => all.push(head.to_owned()),
            Some(open) => expand(&text[at..at + open], &text[at + open..], &mut all),
        }
    }
    all
}

/// The paths of a list in braces behind `prefix`.
fn expand(prefix: &str, list: &str, all: &mut Vec<String>) {
    let (mut depth, mut begin) = (0, 1);
    for (i, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 1 => {
                let item = list[begin..i].trim();
                match item.find('{') {
                    Some(open) => expand(&format!("{prefix}{}", &item[..open]), &item[open..], all),
                    None if !item.is_empty() => all.push(format!("{prefix}{item}")),
                    None => {}
                }
                begin = i + 1;
                if c == '}' {
                    return;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}

/// Imports of every module of a crate.
fn imports(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    files(root, root, &mut found);
    let graph = found.iter().map(|(module, path)| {
        let text = std::fs::read_to_string(path).unwrap();
        let is_tests = |at: &usize| text[*at..].lines().nth(1).is_some_and(|l| l.contains("mod ") && l.ends_with('{'));
        let end = text.match_indices("#[cfg(test)]\n").map(|m| m.0).find(is_tests).unwrap_or(text.len());
        let text = &text[..end];
        let code: String = text.lines().filter(|l| !l.trim_start().starts_with("//")).flat_map(|l| [l, "\n"]).collect();
        let own: Vec<&str> = module.split("::").collect();
        // A file takes from the modules that it declares.
        let children = code.lines().filter_map(|l| l.split("mod ").nth(1)?.strip_suffix(';'));
        let inside = |child: &str| if module == "lib" { child.to_owned() } else { format!("{module}::{child}") };
        let mut of: BTreeSet<String> = children.map(inside).filter(|m| found.contains_key(m)).collect();
        for path in paths(&code) {
            let mut parts: Vec<&str> = path.split("::").collect();
            let mut base = own.clone();
            let is_super = parts[0] == "super";
            while parts.first() == Some(&"super") {
                base.pop();
                parts.remove(0);
            }
            let whole: Vec<&str> = if is_super { base.into_iter().chain(parts).collect() } else { parts[1..].to_vec() };
            // The longest beginning that is a file.
            let target = (1..=whole.len()).rev().map(|n| whole[..n].join("::")).find(|m| found.contains_key(m));
            of.extend(target.filter(|t| t != module));
        }
        (module.clone(), of)
    });
    graph.collect()
}

/// A way from a module back to itself.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk<'a>(
        graph: &'a BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<&'a String>,
        done: &mut BTreeSet<&'a String>,
    ) -> Option<Vec<String>> {
        let last = *way.last().unwrap();
        for next in &graph[last] {
            if let Some(at) = way.iter().position(|m| *m == next) {
                return Some(way[at..].iter().map(|m| (*m).clone()).chain([next.clone()]).collect());
            }
            if !done.contains(next) {
                way.push(next);
                if let Some(found) = walk(graph, way, done) {
                    return Some(found);
                }
                way.pop();
            }
        }
        done.insert(last);
        None
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| walk(graph, &mut vec![start], &mut done))
}

/// The layers of the picture in ARCHITECTURE.md of a source folder, from the top: each a list of modules.
fn layers(page: &str, folder: &str) -> Vec<Vec<String>> {
    let section = page.split("## Who may import whom\n").nth(1).expect("the section");
    let begin = format!("In `{folder}/`:\n\n```text\n");
    let picture = section.split(&begin).nth(1).and_then(|rest| rest.split("```").next()).expect("its picture");
    picture.lines().map(|line| line.split_whitespace().map(|m| m.replace('/', "::")).collect()).collect()
}

/// Imports of a module in a layer above, or of a neighbour in the same one. A module of the picture stands for all
/// below its name that the picture does not have.
fn upward(graph: &BTreeMap<String, BTreeSet<String>>, layers: &[Vec<String>]) -> Vec<String> {
    let place = |module: &str| {
        let of = |name: &String| module == name || module.starts_with(&format!("{name}::"));
        let all = layers.iter().enumerate().flat_map(|(at, names)| names.iter().map(move |name| (at, name)));
        all.filter(|(_, name)| of(name)).max_by_key(|(_, name)| name.len())
    };
    let mut wrong = Vec::new();
    for (module, imported) in graph.iter().filter(|(module, _)| *module != "lib") {
        let Some((layer, name)) = place(module) else {
            wrong.push(format!("{module} is not in the picture"));
            continue;
        };
        // A folder's mod.rs declares what is in it: that is no import.
        let own = |target: &String| target.starts_with(&format!("{module}::"));
        for target in imported.iter().filter(|target| !own(target)) {
            match place(target) {
                Some((below, other)) if below > layer || other == name => {}
                _ => wrong.push(format!("{module} imports {target}")),
            }
        }
    }
    wrong
}

#[test]
fn imports_go_downwards() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for folder in ["src", "codecs/src"] {
        let layers = layers(&page, folder);
        let graph = imports(&root.join(folder));
        for name in layers.iter().flatten() {
            assert!(graph.contains_key(name), "ARCHITECTURE.md's picture has {name}, and {folder} has not");
        }
        let wrong = upward(&graph, &layers);
        assert!(wrong.is_empty(), "{folder} against the picture in ARCHITECTURE.md:\n{}", wrong.join("\n"));
    }
}

#[test]
fn an_upward_import_is_found() {
    let arrow = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(ToString::to_string).collect());
    let layers = layers(
        "# Page\n## Who may import whom\n\nIn `src/`:\n\n```text\narray\nengine  engine/gpu\nerror\n```\n",
        "src",
    );
    let graph: BTreeMap<_, _> = [
        arrow("array", &["array::decode", "engine"]),
        arrow("array::decode", &["array", "error"]),
        arrow("engine", &["engine::gpu", "error"]),
        arrow("engine::gpu::group", &["engine"]),
        arrow("error", &["array::decode"]),
        arrow("part", &[]),
    ]
    .into();
    assert_eq!(
        upward(&graph, &layers),
        ["engine::gpu::group imports engine", "error imports array::decode", "part is not in the picture"]
    );
}

#[test]
fn nobody_imports_himself() {
    for root in ["src", "codecs/src", "plugin/src", "program/src"] {
        let graph = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join(root));
        let arrows: usize = graph.values().map(BTreeSet::len).sum();
        assert!(graph.len() > 5 && arrows > graph.len(), "{root}: {} files, {arrows} imports found", graph.len());
        assert_eq!(circle(&graph), None, "{root}");
    }
}

#[test]
fn a_circle_is_found() {
    let arrow = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(ToString::to_string).collect());
    let mut graph: BTreeMap<_, _> =
        [arrow("a", &["b", "d"]), arrow("b", &["c"]), arrow("c", &[]), arrow("d", &["c"])].into();
    assert_eq!(circle(&graph), None);
    graph.insert("c".into(), ["a".to_owned()].into());
    assert_eq!(circle(&graph).unwrap(), ["a", "b", "c", "a"]);
    assert_eq!(
        paths("use crate::a::{b, c::{d, e}, self};\n x = super::f::g(1)"),
        ["crate::a::b", "crate::a::c::d", "crate::a::c::e", "crate::a::self", "super::f::g"]
    );
}
