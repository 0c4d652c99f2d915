//! The text of a FUCE image: address, word, instruction; labels stand before what they name.

use std::io::Write;

use sidestep_fuce::disassembler::format_word;
use sidestep_fuce::image::Image;

use super::DisasmError;

/// Lists an image's text, or only what follows the label `symbol` up to the next one.
pub(super) fn list(
    path: &str,
    bytes: &[u8],
    symbol: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), DisasmError> {
    let image = Image::from_bytes(bytes).map_err(|source| DisasmError::Fuce {
        path: path.to_owned(),
        source,
    })?;
    let end = image.text.len() as u32 * 4;
    let labels: Vec<(u32, &str)> = image
        .symbols
        .iter()
        .filter(|(address, _)| *address < end)
        .map(|(address, name)| (*address, name.as_str()))
        .collect();
    let range = match symbol {
        None => 0..end,
        Some(wanted) => {
            let Some(&(start, _)) = labels.iter().find(|(_, name)| *name == wanted) else {
                let mut near: Vec<(usize, String)> = labels
                    .iter()
                    .map(|(_, name)| (strsim::damerau_levenshtein(name, wanted), (*name).to_owned()))
                    .collect();
                near.sort();
                let near = near.into_iter().take(3).map(|(_, name)| name).collect();
                return Err(DisasmError::NoSymbol {
                    path: path.to_owned(),
                    name: wanted.to_owned(),
                    near,
                });
            };
            let next = labels
                .iter()
                .map(|(address, _)| *address)
                .find(|address| *address > start);
            start..next.unwrap_or(end)
        }
    };
    write!(
        out,
        "\n{path}:     FUCE image, entry {}\n",
        image.describe(image.entry)
    )?;
    let name = |address: u32| {
        labels
            .iter()
            .find(|(at, _)| *at == address)
            .map(|(_, name)| (*name).to_owned())
    };
    for address in range.step_by(4) {
        for (_, name) in labels.iter().filter(|(at, _)| *at == address) {
            write!(out, "\n{name}:\n")?;
        }
        let word = image.text[address as usize / 4];
        writeln!(
            out,
            "{address:8x}:  {word:08x}  {}",
            format_word(word, address, name)
        )?;
    }
    Ok(())
}
