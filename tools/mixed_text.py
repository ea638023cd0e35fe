"""Seeded text that is hard on tokenizers: scripts, accents, ideographs, emoji, control characters, long words."""

import random

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and doesn't look back.",
    "In 1969, astronauts walked on the Moon; 12% of viewers saw it live (or so they say).",
    "Tokenization splits unbelievably long words into subwords, e.g. internationalization.",
    "Die Äpfel hängen über dem Zaun, größer als im Vorjahr; Straße, Füße, Übermut.",
    "Le garçon a mangé une crème brûlée à Noël, près de l'hôtel où naïf rime avec maïs.",
    "El niño comió jalapeños mañana, ¿verdad? ¡Sí, señor!",
    "Żółw pływał w świeżej wodzie, a źrebię tańczyło wśród łąk.",
    "Việt Nam có nhiều dân tộc và ngôn ngữ khác nhau, rất phong phú.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю; ЙОД и ёлка.",
    "Ο Οδυσσέας γύρισε στην Ιθάκη ύστερα από χρόνια· ΣΊΣΥΦΟΣ; ναι.",
    "שלום עולם, זה מבחן קטן עם נִקּוּד.",
    "مرحبا بالعالم، هذا اختبار مع تَشْكِيل.",
    "नमस्ते दुनिया, यह एक छोटा परीक्षण है। क़ख़ग़",
    "สวัสดีชาวโลก นี่คือการทดสอบเล็กๆ",
    "ការធ្វើតេស្តតូចមួយ",
    "中文分词是一个有趣的问题，不是吗？漢字と仮名が混ざった文章です。",
    "한국어 문장은 자모로 나뉩니다. 대한민국 만세!",
    "ｆｕｌｌｗｉｄｔｈ ＡＢＣ １２３ ﬁne ﬂow ½ ² № ™ ℃ Ω K Å",
    "Emoji: 😀🤗 👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ❤️ ☕️ done.",
    "İstanbul'da IĞDIR ve ışık; ǅ ẞ ŉ ǰ.",
    "x² + y² = z²; ∑ᵢ aᵢ ≤ ∞ ⇒ ∀ε>0 ∃δ.",
    "https://example.org/a_b?c=d&e=f#frag user@mail.example C++ C# node.js @handle #tag",
    "[CLS] A sentence with [MASK] tokens [SEP] and [UNK] or [PAD] ones [sep] [ SEP ] [[MASK]] [SEP",
    "snake_case CamelCase kebab-case $price €5 £6 ¥7 50¢ a+b a=b a<b a>b a^b a`b a|b a~b",
]

BLOCKS = [
    (0x20, 0x7E),
    (0x20, 0x7E),
    (0x61, 0x7A),
    (0x41, 0x5A),
    (0x00, 0x20),
    (0x7F, 0xFF),
    (0x100, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x3FF),
    (0x400, 0x52F),
    (0x590, 0x6FF),
    (0x900, 0xDFF),
    (0xE00, 0xFFF),
    (0x1100, 0x11FF),
    (0x1AB0, 0x1AFF),
    (0x1B00, 0x1BFF),
    (0x1E00, 0x1FFF),
    (0x2000, 0x206F),
    (0x2070, 0x2BFF),
    (0x2DE0, 0x2E7F),
    (0x3000, 0x312F),
    (0x4E00, 0x4E40),
    (0xAC00, 0xAC40),
    (0xF900, 0xFAFF),
    (0xFB00, 0xFFFF),
    (0x10D00, 0x10EFF),
    (0x11000, 0x11FFF),
    (0x16E40, 0x16FFF),
    (0x1D150, 0x1D1AF),
    (0x1F300, 0x1F6FF),
    (0x20000, 0x20040),
    (0x2B700, 0x2BA00),
    (0x2F800, 0x2FA1F),
    (0xE0000, 0xE01FF),
    (0x0, 0x10FFFF),
]


def _character(rng):
    while True:
        cp = rng.randint(*rng.choice(BLOCKS))
        if cp != 0x0A and not 0xD800 <= cp < 0xE000:
            return chr(cp)


def _noise(rng):
    return "".join(_character(rng) for _ in range(rng.randint(1, 12)))


def _long_word(rng):
    return rng.choice(["a", "ab", "é", "ж", "antidisestablishment", "A\u0301"]) * rng.randint(1, 130)


def _repeat_words(rng):
    words = rng.choice(SENTENCES).split(" ")
    rng.shuffle(words)
    return " ".join(words)


def mixed_line(rng):
    """One line without a line feed."""
    parts = []
    for _ in range(rng.randint(1, 6)):
        kind = rng.random()
        if kind < 0.45:
            parts.append(rng.choice(SENTENCES))
        elif kind < 0.7:
            parts.append(_repeat_words(rng))
        elif kind < 0.95:
            parts.append(_noise(rng))
        else:
            parts.append(_long_word(rng))
    return rng.choice([" ", "", "\t", "\u3000", "\u200b"]).join(parts)


def mixed_lines(seed):
    """Lines without end."""
    rng = random.Random(seed)
    while True:
        yield mixed_line(rng)
