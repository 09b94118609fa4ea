"""Words that invented customers and accounts are made of."""

WOMEN = ("Ada", "Bela", "Clara", "Dora", "Edith", "Flora", "Greta", "Hana", "Ida", "Jana", "Klara", "Lena", "Nora")
MEN = ("Adam", "Bruno", "Cyril", "David", "Emil", "Felix", "Gustav", "Hugo", "Ivan", "Karel", "Leo", "Max", "Otto")
LAST = (
    "Amsel", "Berg", "Cerny", "Dvorak", "Eder", "Fiala", "Gruber", "Horak", "Jelinek", "Kolar", "Linden", "Maly",
    "Novak", "Ober", "Pokorny", "Rybar", "Sedlak", "Tichy", "Urban", "Vesely", "Winter", "Zeman",
)  # fmt: skip
CITIES = (
    ("Albany", "NY"), ("Boise", "ID"), ("Columbus", "OH"), ("Denver", "CO"), ("Eugene", "OR"), ("Fresno", "CA"),
    ("Hartford", "CT"), ("Jackson", "MS"), ("Lincoln", "NE"), ("Madison", "WI"), ("Omaha", "NE"), ("Tucson", "AZ"),
)  # fmt: skip
FREQUENCIES = ("Monthly Issuance", "Weekly Issuance", "Issuance After Transaction")
